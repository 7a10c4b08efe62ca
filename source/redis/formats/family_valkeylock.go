package formats

// familyValkeylock is valkeylock of valkey-io/valkey-go: rueidislock's layout
// under valkeylock:<i>:<name>.
// Source: valkey-io/valkey-go valkeylock/lock.go.
var familyValkeylock = trackedLock("valkeylock")
