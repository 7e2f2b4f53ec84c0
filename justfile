# Short names for what is typed often (https://just.systems; `pip install rust-just` has it too).

# The list of recipes.
default:
    @just --list --unsorted

# Format, clippy and the tests of what changed since a commit: two minutes once it was built.
quick since="HEAD":
    #!/usr/bin/env bash
    set -euo pipefail
    files=$(git diff --name-only --relative {{since}}; git ls-files --others --exclude-standard)
    packages=() modules=()
    for folder in $(sed -nE 's#^((crates|bin)/[^/]+)/.*#\1#p' <<<"$files" | sort -u); do
      [ -f "$folder/Cargo.toml" ] || continue
      packages+=(-p "$(sed -n 's/^name = "\(.*\)"/\1/p' "$folder/Cargo.toml" | head -n 1)")
    done
    # A test's name begins with its module, a fixture's with its kind.
    for module in $(sed -nE 's#^tests/([a-z_]+)(\.rs|/.*\.rs)$#\1#p' <<<"$files" | sort -u); do
      modules+=("$module::" "$module/")
    done
    cargo fmt --all
    .ci/knowledge
    [ ${#packages[@]} = 0 ] || cargo clippy "${packages[@]}" --all-targets -- -D warnings
    [ ${#packages[@]} = 0 ] || cargo test "${packages[@]}"
    [ ${#modules[@]} = 0 ] || cargo test --test main --test fixtures -- "${modules[@]}"

# All tests; words select: just test --test fixtures row-07
test *WHAT="--workspace":
    cargo test {{WHAT}}

# What must hold before a change lands; with --full or names of groups more. It says what it skips.
ci *WHAT:
    .ci/run {{WHAT}}

# Rewrites the expected outputs of all tests, or of some: just update -p toolpipe-tag --test cases
update *WHAT="--workspace":
    UPDATE=1 cargo test --no-fail-fast {{WHAT}}
    git diff --stat
