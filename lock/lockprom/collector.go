package lockprom

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/locksteward/locksteward/lock"
)

// Collector counts what lock clients do. It is a [prometheus.Collector], safe
// for concurrent use.
type Collector struct {
	vectors *vectors
	classes *classes

	mu      sync.Mutex
	closed  bool
	watches map[*lock.Client]func() // stop of each client observed
}

var _ prometheus.Collector = (*Collector)(nil)

// New returns a collector of all that the clients do from now on; nil clients are
// left out. One collector serves all clients of a process, which then count
// together: a registry takes only one without [Options].ConstLabels.
func New(clients ...*lock.Client) *Collector {
	return build(Options{}.withDefaults(), clients)
}

// NewWithOptions is [New] with other than the defaults. The error names every
// option that cannot be, or a nil client, and is [lock.ErrInvalid].
func NewWithOptions(o Options, clients ...*lock.Client) (*Collector, error) {
	o = o.withDefaults()
	if err := o.validate(clients); err != nil {
		return nil, err
	}
	return build(o, clients), nil
}

func build(o Options, clients []*lock.Client) *Collector {
	v := newVectors(o)
	c := &Collector{
		vectors: v,
		classes: newClasses(v, o.MaxClasses),
		watches: map[*lock.Client]func(){},
	}
	for _, class := range o.Classes {
		c.classes.of(class)
	}
	for _, client := range clients {
		c.Observe(client)
	}
	return c
}

// Observe adds a client, until stop is called: for clients that come and go. The
// client's counts stay; what it holds leaves the gauge. A client that is observed
// already is not counted twice: stop is then that of the first call. A nil
// client, or a closed collector, changes nothing. stop may be called more than
// once.
func (c *Collector) Observe(client *lock.Client) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if client == nil || c.closed {
		return func() {}
	}
	if stop := c.watches[client]; stop != nil {
		return stop
	}
	w := c.newWatch()
	leave := client.Observe(w.observe)
	stop = sync.OnceFunc(func() {
		leave()
		w.stop()
		c.mu.Lock()
		delete(c.watches, client)
		c.mu.Unlock()
	})
	c.watches[client] = stop
	return stop
}

func (c *Collector) newWatch() *watch {
	return &watch{vectors: c.vectors, classes: c.classes}
}

// Close ends the observation of all clients, for good. The counts can still be
// scraped, until the collector is unregistered.
func (c *Collector) Close() {
	c.mu.Lock()
	c.closed = true
	stops := make([]func(), 0, len(c.watches))
	for _, stop := range c.watches {
		stops = append(stops, stop)
	}
	c.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	c.vectors.each(func(m prometheus.Collector) { m.Describe(ch) })
}

// Collect sends all metrics. It only reads.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.vectors.each(func(m prometheus.Collector) { m.Collect(ch) })
}
