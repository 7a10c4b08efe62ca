package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyRedisSemaphoreSemaphore is redis-semaphore's Semaphore and
// MultiSemaphore: a sorted set semaphore:<name> with an identifier for each
// permit (<identifier>_<i> for several of one holder) and the ms of its last
// renewal by its holder's clock. The key ends one lockTimeout after the last.
// Source: swarthy/redis-semaphore src/{semaphore,multiSemaphore}/*.
var familyRedisSemaphoreSemaphore = &family{
	name:    "redis-semaphore-semaphore",
	noStand: noStandShared,
	key:     prefixed("semaphore:"),
	recognise: func(s Sample) (Decoded, bool) {
		holders, ok := redisSemaphoreHolders(s)
		if !ok {
			return Decoded{}, false
		}
		d := Decoded{
			Confidence: locksteward.ConfidenceHigh,
			Identity:   lineage(s), // an object keeps its identifier
			Count:      s.Size,
			Waiters:    -1, // they poll
			TokenKind:  "a UUID of a redis-semaphore object for each permit",
			RenewEvery: redisSemaphoreRenewEvery,
		}
		if len(holders) == 1 { // of several none is the one
			d.Holder = holders[s.Members[0].Name[:uuidLength]]
		}
		return d, true
	},
	release: func(s Sample, p plan) (Command, error) {
		if holders, _ := redisSemaphoreHolders(s); len(holders) != 1 {
			return Command{}, p.refuse("%d hold it together, and nobody can say which of them is dead; the permit of one that is ends by itself", len(holders))
		}
		// All members with their scores: what Symfony's needs as well.
		return p.command(symfonyLockLua, nil, p.memberArgs(s)...), nil
	},
}

// redisSemaphoreHolders are who holds permits, by their UUIDs.
func redisSemaphoreHolders(s Sample) (map[string]locksteward.Holder, bool) {
	if s.Type != typeZSet || s.TooLarge || len(s.Members) == 0 || int64(len(s.Members)) != s.Size {
		return nil, false
	}
	holders := map[string]locksteward.Holder{}
	for _, m := range s.Members {
		identifier := m.Name
		if before, permit, ok := cutLast(identifier, "_"); ok && isDigits(permit) {
			identifier = before
		}
		holder, ok := redisSemaphoreHolder(identifier)
		if !ok || !isSymfonyTime(m.Score) {
			return nil, false
		}
		holders[strings.Clone(identifier[:uuidLength])] = holder
	}
	return holders, true
}
