#!/bin/sh
# Makes the secrets of compose.yaml in secrets/, at random, once: what is there
# already stays. No password is ever printed.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
cd secrets

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
sha256() {
	if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -d ' ' -f 1
}
digest() { printf %s "$(cat "$1")" | sha256; }
make() { [ -s "$1" ] || printf '%s%s\n' "${2-}" "$(random)" >"$1"; }

make scanner
make releaser
make application
make grafana-admin
for name in ana bo op; do make "$name.token" lsu_; done

# Redis keeps digests. `locksteward acl` prints the rules of the first two.
cat >redis.acl.new <<END
user default off nopass resetkeys resetchannels -@all
user health on nopass resetkeys resetchannels -@all +ping
user scanner on #$(digest scanner) resetkeys resetchannels -@all +hello +auth +ping +select +scan +type +pttl +pexpiretime +exists +time +info +getrange +get +strlen +hlen +hgetall +hmget +zcard +zrange +zscore +scard +smembers +llen +lrange +object|idletime +memory|usage +client|id +client|setname +client|tracking +client|trackinginfo +client|no-touch +cluster|shards +cluster|slots +cluster|myid +readonly +subscribe +pubsub|numsub &__redis__:invalidate &locksteward:* %R~*
user releaser on #$(digest releaser) resetkeys resetchannels -@all +hello +auth +select +client|setname +info +cluster|slots +type +pttl +pexpiretime +strlen +getrange +hlen +hgetall +memory|usage +zcard +zrange +scard +smembers +llen +lrange +eval +time +get +hget +hmget +hset +pexpire +del +publish +spublish +set +zadd +rename +persist +pexpireat +exists +hdel +hexists +incrby +lindex +lpop +lpush +sismember +zrem +zscore ~lock:order:* ~locksteward:exec:* ~locksteward:hold:* ~locksteward:queue:* ~locksteward:waiter:* ~locksteward:undo:* &locksteward:wake:* &locksteward:instance:* &redisson_lock__channel:* &redisson_rwlock:* &redisson_sc:*
user application on #$(digest application) resetkeys resetchannels -@all +@read +@write +@connection +@scripting +@pubsub +time -@dangerous ~lock:* ~locksteward:* &locksteward:*
END
mv redis.acl.new redis.acl

# ana asks, bo approves, op runs the agent.
cat >users.yaml.new <<END
users:
  - {name: ana, roles: [requester], token_sha256: [$(digest ana.token)]}
  - {name: bo, roles: [approver], token_sha256: [$(digest bo.token)]}
  - {name: op, roles: [admin], token_sha256: [$(digest op.token)]}
END
mv users.yaml.new users.yaml

# Compose mounts these as they are, and each container runs as a user of its own.
# The folder keeps other users of this machine out.
chmod 0444 scanner releaser application grafana-admin redis.acl users.yaml
echo "secrets: made in deploy/compose/secrets/; sign in to the console as ana with secrets/ana.token"
