package lockprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// timing is one histogram.
type timing struct {
	prometheus.Observer
	exemplars prometheus.ExemplarObserver // nil if it takes none
}

func newTiming(o prometheus.Observer) timing {
	e, _ := o.(prometheus.ExemplarObserver)
	return timing{o, e}
}

// observe counts d, with the trace that it belongs to if that was sampled:
// an exemplar should lead to a trace that exists.
func (t timing) observe(d time.Duration, traceparent string) {
	seconds := max(0, d).Seconds()
	if t.exemplars != nil && traceparent != "" {
		if id, ok := sampledTrace(traceparent); ok {
			t.exemplars.ObserveWithExemplar(seconds, prometheus.Labels{"trace_id": id})
			return
		}
	}
	t.Observe(seconds)
}

// sampledTrace returns the trace id of a W3C traceparent of version 00, if it is
// valid and its sampled flag is set.
func sampledTrace(parent string) (id string, ok bool) {
	// 00-<32 hex>-<16 hex>-<2 hex>
	if len(parent) != 55 || parent[:3] != "00-" || parent[35] != '-' || parent[52] != '-' {
		return "", false
	}
	id, span, flags := parent[3:35], parent[36:52], parent[53:]
	if !isID(id) || !isID(span) || !isHex(flags[0]) || !isHex(flags[1]) {
		return "", false
	}
	return id, nibble(flags[1])&1 == 1
}

// isID says that s is lower-case hex and not all zeros.
func isID(s string) bool {
	zero := true
	for i := range len(s) {
		if !isHex(s[i]) {
			return false
		}
		zero = zero && s[i] == '0'
	}
	return !zero
}

func isHex(b byte) bool { return '0' <= b && b <= '9' || 'a' <= b && b <= 'f' }

// nibble is the value of a hex digit.
func nibble(b byte) byte {
	if b <= '9' {
		return b - '0'
	}
	return b - 'a' + 10
}
