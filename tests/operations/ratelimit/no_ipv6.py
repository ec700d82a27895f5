"""Starts a program in whose kernel there is no IPv6: a filter of system calls refuses its sockets as such a kernel does."""

import ctypes
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
AF_INET6, EAFNOSUPPORT = 10, 97
SOCKET = {"x86_64": 41, "aarch64": 198}[os.uname().machine]
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ERRNO, ALLOW = 0x00050000, 0x7FFF0000

instructions = [
    (LOAD, 0, 0, 0),  # the number of the call
    (JUMP_IF_EQUAL, 0, 3, SOCKET),
    (LOAD, 0, 0, 16),  # its first argument
    (JUMP_IF_EQUAL, 0, 1, AF_INET6),
    (RETURN, 0, 0, ERRNO | EAFNOSUPPORT),
    (RETURN, 0, 0, ALLOW),
]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in instructions))
program = ctypes.create_string_buffer(struct.pack("@HP", len(instructions), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
for call in [(PR_SET_NO_NEW_PRIVS, 1, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program)]:
    if libc.prctl(call[0], call[1], call[2], 0, 0) != 0:
        sys.exit(f"prctl({call[0]}): {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[1], sys.argv[1:])
