#!/usr/bin/env bash
# The loop by hand, with curl and jq: loop.sh BASE MODEL. What it leaves out: the text appears when the turn has ended, the calls run one after
# the other, no schema is checked, and nothing is retried, limited or kept for later. Deltas without an index, or with one that is used twice,
# become wrong calls.
set -euo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT
tools='[{"type":"function","function":{"name":"t","description":"A tool.","parameters":{"type":"object","properties":{"n":{"type":"integer"}}}}}]'
echo '{"role":"user","content":"go"}' >"$log"
while
    jq -cs --arg model "$2" --argjson tools "$tools" '{model: $model, stream: true, messages: ., tools: $tools}' "$log" |
        curl -sN "$1/chat/completions" -H 'content-type: application/json' -H "authorization: Bearer $OPENAI_API_KEY" -d @- |
        sed -n 's/^data: {/{/p' |
        jq -cn '[inputs.choices[0].delta // empty] |
            {role: "assistant", content: (map(.content // "") | add)} +
            ([.[].tool_calls[]?] | if . == [] then {} else {tool_calls: (group_by(.index) | map({
                id: .[0].id, type: "function",
                function: {name: .[0].function.name, arguments: (map(.function.arguments // "") | add)}}))} end)' >"$log.answer"
    cat "$log.answer" >>"$log"
    jq -j .content "$log.answer"
    calls=$(jq -r '.tool_calls[]? | .id, (.function.arguments | fromjson.n)' "$log.answer")
    [ -n "$calls" ]
do
    while read -r id && read -r n; do
        result=$(/bin/echo "done: $n")
        jq -nc --arg id "$id" --arg result "$result" '{role: "tool", tool_call_id: $id, content: $result}' >>"$log"
    done <<<"$calls"
done
rm "$log.answer"
