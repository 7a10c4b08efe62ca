package pace

import (
	"net"
	"sync"
	"time"
)

const (
	// window is the time over which a host's share is at most [TenMinutes].
	window     = 10 * time.Minute
	slots      = 60
	slotLength = window / slots
	// easing is the time that what is left of the average would last: the share falls gradually, not at once.
	easing = time.Minute
	// least is the share that is never gone below, so that waits end: 3 % of 3 %.
	least = TenMinutes / 1000
	// credit is how much time that was waited too long is made up for: a wake-up that comes late.
	credit = 20 * time.Millisecond
)

// TenMinutes is the largest share of a host that is taken in any ten minutes.
const TenMinutes = 0.03

// Host is one machine, whose servers share an allowance.
type Host struct {
	mu    sync.Mutex // guards what follows; nothing else is locked while it is held
	free  time.Time  // when all work so far is paid for
	spent [slots]time.Duration
	slot  int64 // that was written last, in [slotLength] since 1970
}

// Server returns the pace of a server on h that nothing is known of yet. cfg is valid.
func (h *Host) Server(cfg Config) *Server { return newServer(h, cfg) }

// spend books work at a share.
func (h *Host) spend(now time.Time, took time.Duration, share float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if start := now.Add(-took - credit); h.free.Before(start) {
		h.free = start
	}
	h.free = h.free.Add(time.Duration(float64(took) / share))
	h.forget(now)
	h.spent[h.slot%slots] += took
}

// forget drops what was spent before the window.
func (h *Host) forget(now time.Time) {
	slot := now.UnixNano() / int64(slotLength)
	for passed := min(slot-h.slot, slots); passed > 0; passed-- {
		h.spent[(slot-passed+1)%slots] = 0
	}
	h.slot = max(h.slot, slot)
}

// left returns what may be spent within the window still.
func (h *Host) left(now time.Time) time.Duration {
	h.forget(now)
	left := time.Duration(TenMinutes * float64(window))
	for _, spent := range h.spent {
		left -= spent
	}
	return left
}

// most returns the largest share that the average allows now.
func (h *Host) most(now time.Time) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(least, float64(h.left(now))/float64(easing))
}

func (h *Host) wait(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, h.free.Sub(now))
}

// ready returns for how long a sweep that costs need must not begin so that it has the room for it within the average,
// 0 for not at all. One that needs more than half of the average waits for that half.
func (h *Host) ready(now time.Time, need time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := h.left(now)
	need = min(need, time.Duration(TenMinutes*float64(window))/2)
	for i := int64(1); i <= slots; i++ {
		if left >= need {
			if i == 1 {
				return 0
			}
			at := time.Unix(0, (h.slot+i-1)*int64(slotLength))
			return max(0, at.Sub(now))
		}
		left += h.spent[(h.slot+i)%slots]
	}
	return window
}

// Hosts are the hosts of a process, by the host part of an address. The zero value is ready for use.
type Hosts struct {
	mu   sync.Mutex // guards what follows; nothing else is locked while it is held
	list map[string]*Host
}

// At returns the host of an address, host:port.
func (l *Hosts) At(addr string) *Host {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		name = addr
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.list[name]
	if h == nil {
		if l.list == nil {
			l.list = map[string]*Host{}
		}
		h = new(Host)
		l.list[name] = h
	}
	return h
}
