package config

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
)

// lookUp asks for the SRV records of names, all at once, each within
// [answerWithin].
func lookUp(ctx context.Context, server string, names []string) map[string]srvSeen {
	resolver := net.DefaultResolver
	if server != "" {
		resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, server)
		}}
	}
	out := make(map[string]srvSeen, len(names))
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, name := range names {
		group.Go(func() {
			records, err := lookUpOne(ctx, resolver, name)
			mu.Lock()
			defer mu.Unlock()
			out[name] = srvSeen{records, err}
		})
	}
	group.Wait()
	return out
}

// lookUpOne returns the records of a name; none is an error.
func lookUpOne(ctx context.Context, resolver *net.Resolver, name string) ([]Endpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	_, answers, err := resolver.LookupSRV(ctx, "", "", name)
	var out []Endpoint
	for _, a := range answers {
		// A root as host says that there is no such service (RFC 2782).
		if host := strings.ToLower(strings.TrimSuffix(a.Target, ".")); host != "" {
			out = append(out, Endpoint{Host: host, Port: a.Port})
		}
	}
	switch {
	case len(out) > 0:
		// Names that the resolver left out as malformed come as an error beside the rest.
		return out, nil
	case err != nil:
		return nil, fmt.Errorf("ask for SRV records: %w", err)
	default:
		return nil, fmt.Errorf("ask for SRV records: lookup %s: %w", name, errNoRecords)
	}
}

var errNoRecords = errors.New("the answer has no records; what was known before counts on")
