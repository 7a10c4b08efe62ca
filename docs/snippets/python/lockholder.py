"""A lock that Locksteward can read, in Python with redis-py.

It follows docs/wire-format.md: token, metadata and fence are written by one
script, renewed by another, and released by a third that compares first. Copy
this file and lock/{acquire,renew,release}.lua. What it leaves out, as that page
allows: the queue of waiters, grants, the heartbeat.

    lock = Lock(redis.Redis(socket_timeout=3), "lock:order:42", ttl=30, app="billing")
    fence = lock.acquire()          # None: another has it
    try:
        while work_left() and lock.valid():
            step(fence)             # let what you write to refuse a smaller fence
            lock.renew()            # at least every third of the TTL
    finally:
        lock.release()              # RELEASED, LOST or UNKNOWN
"""

import os
import secrets
import socket
import time
from pathlib import Path

import redis
from redis.crc import key_slot

RELEASED, LOST, UNKNOWN = "released", "lost", "unknown"
META_GRACE = 300_000  # ms that metadata outlives a lease


class Lock:
    """One acquisition. Not for use by several threads at once."""

    def __init__(self, client, key, ttl, app, purpose="", expect=0, prefix="locksteward:", scripts="lock"):
        self.client, self.key, self.ttl = client, key, int(ttl * 1000)
        self.about = {"app": app, "host": socket.gethostname(), "pid": os.getpid(), "purpose": purpose,
                      "ttl": self.ttl, "renew_every": self.ttl // 3, "expect": int(expect * 1000)}
        self.meta, self.wait, self.waiter = (companion(prefix, kind, key) for kind in ("meta", "wait", "waiter"))
        self.counter = prefix + "fence:{%s}" % number(key_slot(key.encode()))
        self.script = {name: client.register_script((Path(scripts) / (name + ".lua")).read_text())
                       for name in ("acquire", "renew", "release")}
        self.value, self.until, self.failures = None, (0, 0), 0

    def acquire(self):
        """Takes the lock: its fence, or None if another has it, or is before in its queue."""
        self.id = secrets.token_hex(16)
        self.value = "ls1:%s:%s" % (self.id, secrets.token_hex(20))
        about = [text for name, value in self.about.items() if value for text in (name, value)]
        # Once more if no reply came: the script answers the same request as before.
        for last in (False, True):
            sent = clocks()
            try:
                reply = self.script["acquire"](
                    [self.key, self.meta, self.counter, self.wait, self.waiter],
                    [self.value, self.id, self.ttl, self.ttl + META_GRACE, "0 0 0 150 - - -", "", "", "v", 1, *about])
            except (redis.ConnectionError, redis.TimeoutError):
                if last:
                    self.release()  # it may have been taken
                    raise
                continue
            fence = reply if not isinstance(reply, list) else reply[1] if reply[0] == 2 else None
            if fence is None:
                self.value = None
                return None
            self.lasts(sent)
            return int(fence)

    def lasts(self, sent):
        """The lease counts from before the request, less 1 % and 2 ms, by both clocks."""
        left = self.ttl * 0.99 / 1000 - 0.002
        self.until = (sent[0] + left, sent[1] + left)

    def valid(self):
        """Whether the lock is held for certain. Look before each step: nothing else tells a
        process that was paused."""
        now = clocks()
        return self.value is not None and now[0] < self.until[0] and now[1] < self.until[1]

    def renew(self):
        """True: renewed. False: lost, stop working. None: no reply, try again while valid()."""
        if not self.valid():
            return False
        sent = clocks()
        try:
            reply = self.script["renew"](
                [self.key, self.meta], [self.value, self.id, self.ttl, META_GRACE, self.failures, -1, 0])
        except (redis.ConnectionError, redis.TimeoutError):
            self.failures += 1
            return None
        self.failures = 0
        if reply != 1:
            self.until = (0, 0)
            return False
        self.lasts(sent)
        return True

    def release(self):
        """Frees the lock if it is still this hold's, and wakes who waits. UNKNOWN: no reply
        came; the lock is free at the end of its TTL at the latest."""
        value, self.value = self.value, None
        if value is None:
            return LOST
        # Waiters of a Cluster listen on a sharded channel.
        command = "SPUBLISH" if isinstance(self.client, redis.RedisCluster) else "PUBLISH"
        doubt = False
        for _ in range(2):
            try:
                reply = self.script["release"](
                    [self.key, self.meta, self.wait, self.waiter], [value, command])
            except (redis.ConnectionError, redis.TimeoutError):
                doubt = True
                continue
            # Gone after a release without a reply: that one freed it, or its time was over.
            return RELEASED if reply == 1 or doubt and reply == 0 else LOST
        return UNKNOWN


def clocks():
    """Monotonic and wall time: one stands while a machine sleeps, the other can be set."""
    return time.monotonic(), time.time()


def companion(prefix, kind, key):
    """The name of a key that belongs to a lock, in the lock's hash slot."""
    tag = tag_of(key)
    return "%s%s:{%s}%s" % (prefix, kind, tag, "" if tag == key else ":" + key)


def tag_of(key):
    start = key.find("{")
    end = key.find("}", start + 1)
    if start >= 0 and end > start + 1:
        return key[start + 1:end]
    if key and "}" not in key:
        return key
    return number(key_slot(key.encode()))


def number(slot):
    """The smallest decimal number in a hash slot."""
    n = 0
    while key_slot(b"%d" % n) != slot:
        n += 1
    return str(n)


def main():
    """By hand: python3 lockholder.py URL KEY TTL, then acquire, renew, valid, release."""
    import sys
    client = redis.Redis.from_url(sys.argv[1], socket_timeout=0.5)
    if client.info("cluster").get("cluster_enabled"):
        client = redis.RedisCluster.from_url(sys.argv[1], socket_timeout=0.5)
    lock = Lock(client, sys.argv[2], float(sys.argv[3]), app="snippet", purpose="by hand",
                scripts=os.environ.get("SCRIPTS", "lock"))
    for line in sys.stdin:
        try:
            answer = getattr(lock, line.strip())()
        except redis.RedisError as error:
            answer = type(error).__name__
        print(answer, flush=True)


if __name__ == "__main__":
    main()
