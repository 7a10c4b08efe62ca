"""A lock that Locksteward can read, in Python with redis-py.

It follows docs/wire-format.md: token, metadata and fence are written by one
script, renewed by another, and released by a third that compares first. Copy
this file and lock/{acquire,renew,release}.lua. What it leaves out, as that
page allows: the heartbeat.

    lock = Lock(redis.Redis(socket_timeout=3), "lock:order:42", ttl=30, app="billing")
    fence = lock.acquire()          # None: another has it; lock.wait(10) waits in its queue
    try:
        while work_left() and lock.valid():
            step(fence)             # let what you write to refuse a smaller fence
            lock.renew()            # at least every third of the TTL
    finally:
        lock.release()              # RELEASED, LOST or UNKNOWN
"""

import json
import os
import secrets
import socket
import time
from pathlib import Path

import redis
from redis.crc import key_slot

RELEASED, LOST, UNKNOWN = "released", "lost", "unknown"
GRACE = 300_000  # ms that metadata outlives a lease
TURN = 150  # ms for which a release hands the lock over


class Lock:
    """One acquisition. Not for use by several threads at once."""

    def __init__(self, client, key, ttl, app, purpose="", expect=0, prefix="locksteward:", scripts="lock"):
        self.client, self.key, self.ttl, self.prefix = client, key, int(ttl * 1000), prefix
        self.cluster = isinstance(client, redis.RedisCluster)
        # Waiters of a Cluster listen on sharded channels.
        self.publish = "SPUBLISH" if self.cluster else "PUBLISH"
        self.instance = secrets.token_hex(13)
        self.about = {"v": 2, "instance": self.instance, "app": app, "host": socket.gethostname(), "pid": os.getpid(),
                      "purpose": purpose, "ttl": self.ttl, "renew_every": self.ttl // 3, "expect": int(expect * 1000)}
        self.hold, self.queue, self.waiter = (companion(prefix, kind, key) for kind in ("hold", "queue", "waiter"))
        self.keys = [key, self.hold, prefix + "fence:{%s}" % number(key_slot(key.encode())), self.queue, self.waiter]
        self.script = {name: client.register_script((Path(scripts) / (name + ".lua")).read_text())
                       for name in ("acquire", "renew", "release")}
        self.value, self.fence, self.until, self.renewals = None, 0, (0, 0), 0

    def metadata(self, **more):
        """A JSON object without its opening brace; its first member is the id. The scripts
        find members by their text: there must be no space around a colon."""
        about = {"id": self.id, **more, **self.about}
        return json.dumps({name: value for name, value in about.items() if value}, separators=(",", ":"))[1:]

    def begin(self):
        self.id, self.renewals = secrets.token_hex(16), 0
        self.value = "ls2:%s:%s" % (self.id, secrets.token_hex(20))

    def acquire(self):
        """Takes the lock: its fence, or None if another has it, or is before in its queue."""
        self.begin()
        fence = self.attempt("")[0]
        if fence is None:
            self.value = None
        return fence

    def attempt(self, waiter):
        """Asks for the lock: its fence if it was taken, and the reply."""
        # Once more if no reply came: the script answers the same request as before.
        for last in (False, True):
            sent = clocks()
            try:
                reply = self.script["acquire"](
                    self.keys, [self.value, self.id, self.ttl, self.ttl + GRACE, self.metadata(), waiter])
            except (redis.ConnectionError, redis.TimeoutError):
                if last:
                    self.release()  # it may have been taken
                    raise
                continue
            fence = reply if not isinstance(reply, list) else reply[1] if reply[0] == 2 else None
            if fence is not None:
                fence = self.fence = int(fence)
                self.lasts(sent, self.ttl)
            return fence, reply

    def wait(self, timeout):
        """Waits in the queue for up to timeout seconds: the fence, or None."""
        self.begin()
        end, since, n, proof = time.monotonic() + timeout, 0, 0, secrets.token_hex(13)
        with Listener(self) as messages:
            while True:
                # The nonce proves that a hand-off is younger than this attempt.
                n, sent = n + 1, clocks()
                nonce = "%s%d" % (proof, n)
                fence, reply = self.attempt("%d %s - %s" % (since, nonce, self.instance))
                if fence is not None:
                    return fence
                since = reply[3]
                left = reply[1] / 1000 + 0.002 if reply[1] >= 0 else 1
                again = time.monotonic() + min(1, left + max(0, reply[2]) * TURN / 1000)
                while time.monotonic() < min(again, end):
                    word = messages.next(min(again, end) - time.monotonic())
                    if word[:2] == ["yours", self.id]:
                        if word[3] == nonce:
                            self.fence = int(word[2])
                            self.lasts(sent, min(TURN, self.ttl))
                            if self.renew(confirm=True):  # it was handed over for a turn only
                                return self.fence
                        break  # an attempt finds out, and makes the lock last
                    if word[:2] == ["turn", self.id]:
                        again = time.monotonic() + int(word[2]) * TURN / 1000
                if time.monotonic() >= end:
                    self.release()  # out of the queue first: a release may have handed the lock over
                    self.value = None
                    return None

    def lasts(self, sent, ttl):
        """The lease counts from before the request, less 1 % and 2 ms, by both clocks."""
        left = ttl * 0.99 / 1000 - 0.002
        self.until = (sent[0] + left, sent[1] + left)

    def valid(self):
        """Whether the lock is held for certain. Look before each step: nothing else tells a
        process that was paused."""
        now = clocks()
        return self.value is not None and now[0] < self.until[0] and now[1] < self.until[1]

    def renew(self, confirm=False):
        """True: renewed. False: lost, stop working. None: no reply, try again while valid()."""
        if not self.valid():
            return False
        sent, more = clocks(), {}
        if not confirm:
            self.renewals += 1
            more = {"seq": self.renewals, "renewals": self.renewals}
        try:
            reply = self.script["renew"](
                self.keys[:2], [self.value, self.ttl, GRACE, self.fence, more.get("seq", 0), -1, self.metadata(**more)])
        except (redis.ConnectionError, redis.TimeoutError):
            return None
        if reply != 1:
            self.until = (0, 0)
            return False
        self.lasts(sent, self.ttl)
        return True

    def release(self):
        """Frees the lock if it is still this hold's, or hands it to the next waiter. UNKNOWN:
        no reply came; the lock is free at the end of its TTL at the latest."""
        value, self.value = self.value, None
        if value is None:
            return LOST
        doubt = False
        for _ in range(2):
            try:
                reply = self.script["release"](self.keys, [value, self.publish])
            except (redis.ConnectionError, redis.TimeoutError):
                doubt = True
                continue
            # Gone after a release without a reply: that one freed it, or its time was over.
            return RELEASED if reply == 1 or doubt and reply == 0 else LOST
        return UNKNOWN


class Listener:
    """Receives what releases send to a waiter, from before it enters the queue."""

    def __init__(self, lock):
        client, command, channel = lock.client, "SUBSCRIBE", lock.prefix + "instance:" + lock.instance
        if lock.cluster:
            client = client.get_redis_connection(client.get_node_from_key(lock.key))
            command, channel = "SSUBSCRIBE", companion(lock.prefix, "wake", lock.key) + ":" + lock.instance
        self.pubsub = client.pubsub()
        self.pubsub.execute_command(command, channel)
        self.pubsub.parse_response(timeout=3)

    def next(self, timeout):
        """The words of the next message; three empty ones if none comes within timeout seconds."""
        reply = self.pubsub.parse_response(block=False, timeout=max(0.001, timeout))
        text = reply[2] if reply else b""
        return (text.decode() if isinstance(text, bytes) else str(text)).split(" ") + ["", "", ""]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pubsub.close()


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
    """By hand: python3 lockholder.py URL KEY TTL, then acquire, wait, renew, valid, release.
    URL begins with redis:// or redis+cluster://."""
    import sys
    client = redis.RedisCluster if sys.argv[1].startswith("redis+cluster:") else redis.Redis
    client = client.from_url(sys.argv[1].replace("+cluster", "", 1), socket_timeout=0.5)
    lock = Lock(client, sys.argv[2], float(sys.argv[3]), app="snippet", purpose="by hand",
                scripts=os.environ.get("SCRIPTS", "lock"))
    for line in sys.stdin:
        try:
            answer = lock.wait(20) if line.strip() == "wait" else getattr(lock, line.strip())()
        except redis.RedisError as error:
            answer = type(error).__name__
        print(answer, flush=True)


if __name__ == "__main__":
    main()
