"""Makes system calls that a filter may deny, and prints the name and the error of each, one a line; 0 where there was none.

Runs as root without a filter, too: each call has arguments with which it changes nothing outside of this process and its children.
"""
import ctypes
import errno
import mmap
import os
import platform
import resource
import signal
import socket
import subprocess
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"


def call(name, function, *arguments):
    ctypes.set_errno(0)
    error = ctypes.get_errno() if function(*arguments) == -1 else 0
    print(name, errno.errorcode.get(error, error))


def number(name, x86, other, *arguments):
    call(name, LIBC.syscall, x86 if X86 else other, *[ctypes.c_long(argument) for argument in arguments])


def open_socket(name, *kind):
    try:
        socket.socket(*kind).close()
        print(name, 0)
    except OSError as error:
        print(name, errno.errorcode[error.errno])


def in_child(name, work):
    child = os.fork()
    if child == 0:
        os._exit(work())
    print(name, os.waitpid(child, 0)[1])


def works(name, work):
    work()
    print(name, 0)


def interrupt_80():
    """Asks for the process id by the system calls of 32 bits: push rbx; mov eax, 20; int 0x80; pop rbx; ret."""
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return 7 if ctypes.CFUNCTYPE(ctypes.c_int)(address)() > 0 else 8


other = os.fork()
if other == 0:
    signal.pause()

open_socket("vsock", 40, socket.SOCK_STREAM)
open_socket("packet", socket.AF_PACKET, socket.SOCK_DGRAM)
open_socket("alg", 38, socket.SOCK_SEQPACKET)
open_socket("netfilter", socket.AF_NETLINK, socket.SOCK_RAW, 12)
open_socket("mptcp", socket.AF_INET, socket.SOCK_STREAM, 262)
open_socket("sctp", socket.AF_INET6, socket.SOCK_STREAM, 132)
open_socket("route", socket.AF_NETLINK, socket.SOCK_RAW, 0)
open_socket("tcp", socket.AF_INET, socket.SOCK_STREAM)
open_socket("udp6", socket.AF_INET6, socket.SOCK_DGRAM)
try:
    socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", 9))
except OSError as error:
    print("fast-open", errno.errorcode[error.errno])
number("add_key", 248, 217, 0, 0, 0, 0, 0)
number("keyctl", 250, 219, 0, -3, 0)
number("request_key", 249, 218, 0, 0, 0, 0)
number("io_uring_setup", 425, 425, 1, 0)
number("io_uring_enter", 426, 426, -1, 0, 0, 0, 0, 0)
number("bpf", 321, 280, 0, 0, 0)
number("perf_event_open", 298, 241, 0, 0, -1, -1, 0)
number("userfaultfd", 323, 282, 0)
number("process_vm_readv", 310, 270, other, 0, 0, 0, 0, 0)
number("process_vm_writev", 311, 271, other, 0, 0, 0, 0, 0)
number("pidfd_getfd", 438, 438, -1, 0, 0)
number("open_tree", 428, 428, -1, 0, 0)
number("kexec_load", 246, 104, 0, 1 << 20, 0, 0)
number("name_to_handle_at", 303, 264, -1, 0, 0, 0, 0)
call("ptrace", LIBC.ptrace, 16, other, None, None)
call("prlimit", LIBC.prlimit, other, resource.RLIMIT_NOFILE, None, None)
call("mount", LIBC.mount, None, None, None, 0, None)
call("umount", LIBC.umount2, None, 0)
call("setns", LIBC.setns, -1, 0)
call("unshare", LIBC.unshare, 0x10000000)
number("clone3", 435, 435, 0, 0)
if X86:
    number("x32", 0x40000000 | 39, 0)
    in_child("int80", interrupt_80)
works("thread", lambda: threading.Thread(target=int).start())
works("process", lambda: subprocess.run(["true"], check=True))
works("pair", socket.socketpair)
works("limit", lambda: resource.prlimit(0, resource.RLIMIT_NOFILE))
in_child("traced", lambda: -LIBC.ptrace(0, 0, None, None))
print(open("/proc/self/status").read().split("NoNewPrivs:")[1].split()[0], "no_new_privs")
os.kill(other, signal.SIGKILL)
