"""Takes a kazoo lock, says "held", and releases it when standard input has a line."""
import sys

from kazoo.client import KazooClient

hosts, recipe, path = sys.argv[1:4]
client = KazooClient(hosts=hosts, timeout=20)
client.start()
print("session %x" % client.client_id[0], flush=True)
make = {
    "mutex": client.Lock, "persistent": client.Lock, "read": client.ReadLock, "write": client.WriteLock, "semaphore": client.Semaphore,
}[recipe]
lock = make(path, "worker-7.example")
if recipe == "persistent":
    lock.acquire(ephemeral=False)
else:
    lock.acquire()
print("held", flush=True)
if sys.stdin.readline() == "exit\n":
    client.stop()
    client.close()
    sys.exit()
lock.release()
print("free", flush=True)
client.stop()
client.close()
