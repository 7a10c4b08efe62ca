package redis

import (
	"context"
	"slices"
)

// listenersPerCall bounds one PUBSUB NUMSUB.
const listenersPerCall = 100

// countListeners asks how many connections are subscribed to the channels of
// silent processes: a process that is merely slow to write its heartbeat is
// still connected. In a Cluster a subscriber may be at any node, so all masters
// are asked, and one that does not answer leaves the numbers unknown.
func (s *Source) countListeners(ctx context.Context, ids []string, passes []*pass) map[string]int {
	out := map[string]int{}
	for chunk := range slices.Chunk(ids, listenersPerCall) {
		if !s.caps.has("pubsub|numsub") {
			return out
		}
		var channels []string
		owner := map[string]string{}
		for _, id := range chunk {
			for _, key := range s.instanceKeys(id) {
				channels, owner[key.key] = append(channels, key.key), id
			}
		}
		total, failed := map[string]int{}, false
		for _, p := range passes {
			counts, err := p.listeners(ctx, channels)
			failed = failed || err != nil
			for channel, n := range counts {
				total[owner[channel]] += int(n)
			}
		}
		if failed {
			continue
		}
		for _, id := range chunk {
			out[id] = total[id]
		}
	}
	return out
}

func (p *pass) listeners(ctx context.Context, channels []string) (counts map[string]int64, err error) {
	err = p.call(ctx, 1, func() (err error) {
		counts, err = p.master.Client.PubSubNumSub(ctx, channels...).Result()
		return err
	})
	switch {
	case err == nil:
		p.s.caps.allow("pubsub|numsub")
	case judge(err) == without:
		p.s.caps.refuse("pubsub|numsub", err)
	}
	return counts, err
}
