# SPDX-License-Identifier: Apache-2.0
# Connects to keychaind and executes another program on the connection, which copies what its child writes to it.
#
#   relay.py SOCKET PROGRAM     prints the level that keychaind gives the connection, or "refused"
import os, socket, struct, sys

connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
connection.connect(sys.argv[1])
source, sink = os.pipe()
if os.fork() == 0:
    os.close(source)
    hello = connection.recv(65536)
    body = hello[10:26] + struct.pack("<I", 3) + b"app" + bytes(4) + bytes(1) + bytes(1)
    os.write(sink, bytes([1, 2, 0, 0]) + struct.pack("<I", len(body)) + body)
    try:
        reply = connection.recv(65536)
    except ConnectionError:
        reply = b""
    # After the header: a byte about an application password, and 4 for the level.
    print("level %d" % reply[10] if reply[9:10] == b"\x04" else "refused", flush=True)
else:
    os.close(sink)
    os.dup2(source, 0)
    os.dup2(connection.fileno(), 1)
    os.execv(sys.argv[2], [sys.argv[2]])
