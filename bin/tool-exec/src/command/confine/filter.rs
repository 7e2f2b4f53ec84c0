//! The system call filter of every sandbox (seccomp(2)). It closes what the rules about files,
//! ports and namespaces leave open: other socket families, of which AF_VSOCK leads out of any
//! network namespace, and parts of the kernel that tool commands do not need.
//!
//! The filter lists what is denied. A list of what is allowed would break programs with each new
//! version of a C library.

use nix::libc;
use rustix::fs::{MemfdFlags, memfd_create};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::OwnedFd;
use tool::CommandNetwork;

/// Missing from the `libc` crate for musl on aarch64; the number is from the kernel's
/// `include/uapi/asm-generic/unistd.h`.
#[cfg(all(target_arch = "aarch64", target_env = "musl"))]
const KEXEC_FILE_LOAD: i64 = 294;
#[cfg(not(all(target_arch = "aarch64", target_env = "musl")))]
const KEXEC_FILE_LOAD: i64 = libc::SYS_kexec_file_load;

/// Calls that are denied regardless of their arguments.
const CALLS: [i64; 46] = [
    // The user's keyrings, which no namespace separates.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // Other ways to make system calls, and to run code in the kernel.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // The memory and descriptors of other processes.
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    // The machine as a whole.
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // Opening files by handle, which bypasses all paths, and notifications about a whole file
    // system.
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
];

/// ioctl(2) requests that type into a terminal or paste into a console.
#[allow(
    clippy::unnecessary_cast,
    reason = "C libraries have different types for them"
)]
const TYPING: [u64; 2] = [libc::TIOCSTI as u64, libc::TIOCLINUX as u64];

/// The allowed protocols of AF_INET and AF_INET6: the type's default, ICMP, TCP, UDP and ICMPv6.
/// Landlock's rules about TCP ports do not cover MPTCP, SCTP and others.
const PROTOCOLS: [i32; 5] = [
    libc::IPPROTO_IP,
    libc::IPPROTO_ICMP,
    libc::IPPROTO_TCP,
    libc::IPPROTO_UDP,
    libc::IPPROTO_ICMPV6,
];

/// The first call number of the x32 ABI, which shares the architecture of x86-64 but uses other
/// numbers (`__X32_SYSCALL_BIT`).
const X32: u32 = 0x4000_0000;

/// Installs the filter in this process. Its children inherit the filter, and it cannot be removed.
///
/// # Errors
/// If the filter is unavailable.
pub(super) fn install(network: &CommandNetwork) -> Result<(), String> {
    apply_filter(&program(network)?).map_err(|e| format!("the filter of system calls: {e}"))
}

/// Returns a file with the filter, in the format of `bwrap --seccomp`. A program that this process
/// executes inherits the descriptor.
///
/// # Errors
/// If the filter is unavailable.
pub(super) fn file(network: &CommandNetwork) -> Result<OwnedFd, String> {
    let bytes: Vec<u8> = program(network)?.iter().flat_map(bytes).collect();
    let write = || {
        let mut file = File::from(memfd_create("filter", MemfdFlags::empty())?);
        file.write_all(&bytes)?;
        file.rewind()?;
        Ok(OwnedFd::from(file))
    };
    write().map_err(|e: std::io::Error| format!("the filter of system calls: {e}"))
}

/// Encodes an instruction in the kernel's format (`struct sock_filter`).
fn bytes(instruction: &sock_filter) -> [u8; 8] {
    let sock_filter { code, jt, jf, k } = instruction;
    let ([a, b], [c, d, e, f]) = (code.to_ne_bytes(), k.to_ne_bytes());
    [a, b, *jt, *jf, c, d, e, f]
}

/// Returns the filter for a command with access to `network`. A program of another architecture,
/// such as a 32-bit one, is killed at its first system call, because its call numbers differ.
fn program(network: &CommandNetwork) -> Result<BpfProgram, String> {
    let machine = std::env::consts::ARCH;
    let target = machine
        .try_into()
        .map_err(|_| format!("there is no filter of system calls for {machine}"))?;
    let rules = rules(network).map_err(|e| e.to_string())?;
    let denied = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, target)
        .map_err(|e| e.to_string())?;
    let filter = BpfProgram::try_from(filter).map_err(|e| e.to_string())?;
    Ok(missing().into_iter().chain(filter).collect())
}

/// Returns instructions that fail with ENOSYS, as if the kernel lacked the call, for all calls of
/// the x32 ABI and for clone3(2), whose flags a filter cannot inspect. C libraries then fall back
/// to clone(2).
fn missing() -> [sock_filter; 4] {
    let statement = |code: u32, k: u32| sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let jump = |code: u32, k: u32, jt: u8, jf: u8| sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    [
        // The call number is the first field.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        jump(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, X32, 1, 0),
        jump(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            libc::SYS_clone3 as u32,
            0,
            1,
        ),
        statement(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32,
        ),
    ]
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Returns the denied calls, each with its rules. A call is denied if any of its rules matches, or
/// if it has none.
fn rules(network: &CommandNetwork) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = CALLS.into_iter().map(|call| (call, Vec::new())).collect();
    let mut deny = |calls: &[i64], conditions: &[(u8, SeccompCmpOp, u64)]| {
        let condition = |(index, operator, value): &(u8, SeccompCmpOp, u64)| {
            SeccompCondition::new(*index, SeccompCmpArgLen::Dword, operator.clone(), *value)
        };
        let rule = SeccompRule::new(conditions.iter().map(condition).collect::<Result<_, _>>()?)?;
        calls
            .iter()
            .for_each(|call| rules.entry(*call).or_default().push(rule.clone()));
        Ok(())
    };
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    // Tracing a process from its start is still allowed, but not attaching to another process.
    for request in [libc::PTRACE_ATTACH, libc::PTRACE_SEIZE] {
        deny(&[libc::SYS_ptrace], &[(0, Eq, request as u64)])?;
    }
    deny(&[libc::SYS_prlimit64], &[(0, Ne, 0)])?;
    let user_namespace = libc::CLONE_NEWUSER as u64;
    deny(
        &[libc::SYS_clone, libc::SYS_unshare],
        &[(0, MaskedEq(user_namespace), user_namespace)],
    )?;
    for request in TYPING {
        deny(&[libc::SYS_ioctl], &[(1, Eq, request)])?;
    }
    // Without a network, the command's namespace has only its own loopback interface, which
    // programs use among themselves.
    let mut families = vec![libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
    if *network != CommandNetwork::Off {
        families.push(libc::AF_NETLINK);
    }
    let others: Vec<_> = families
        .iter()
        .map(|family| (0, Ne, *family as u64))
        .collect();
    deny(&[libc::SYS_socket, libc::SYS_socketpair], &others)?;
    for family in [libc::AF_INET, libc::AF_INET6] {
        let others = PROTOCOLS.iter().map(|protocol| (2, Ne, *protocol as u64));
        deny(
            &[libc::SYS_socket],
            &[(0, Eq, family as u64)]
                .into_iter()
                .chain(others)
                .collect::<Vec<_>>(),
        )?;
    }
    // Of netlink, only addresses and routes are allowed.
    deny(
        &[libc::SYS_socket],
        &[
            (0, Eq, libc::AF_NETLINK as u64),
            (2, Ne, libc::NETLINK_ROUTE as u64),
        ],
    )?;
    // Data in the first packet (TCP Fast Open) connects without connect(2), which Landlock's rules
    // about ports check.
    let fast_open = libc::MSG_FASTOPEN as u64;
    deny(
        &[libc::SYS_sendto, libc::SYS_sendmmsg],
        &[(3, MaskedEq(fast_open), fast_open)],
    )?;
    deny(&[libc::SYS_sendmsg], &[(2, MaskedEq(fast_open), fast_open)])?;
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_fits_into_the_kernel_and_its_file_holds_it() {
        for network in [
            CommandNetwork::Off,
            CommandNetwork::On,
            CommandNetwork::NoTcp,
            CommandNetwork::Ports(vec![443]),
        ] {
            let program = program(&network).unwrap();
            assert!(program.len() < 4096, "{}", program.len()); // BPF_MAXINSNS
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut File::from(file(&network).unwrap()), &mut bytes)
                .unwrap();
            assert_eq!(bytes.len(), 8 * program.len());
        }
    }
}
