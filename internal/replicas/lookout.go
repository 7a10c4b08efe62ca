package replicas

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/store"
)

// lookWithin is how long an attempt to reach a target may take.
const lookWithin = time.Second

// lookout looks whether targets can be reached: those that this replica works on, and
// those that it, or another replica, cannot reach. It is safe for concurrent use.
type lookout struct {
	log     *zap.Logger
	try     func(ctx context.Context, target string) (why string)
	changed func() // what is to be said is another

	mu   sync.Mutex
	at   map[string]*looked
	over bool
	work sync.WaitGroup
}

// looked is a target that is looked at.
type looked struct {
	sight
	target    string
	why       string // it could not be reached, last
	works     bool   // this replica works on it
	elsewhere bool   // another replica cannot reach it
	again     chan struct{}
	stop      context.CancelFunc
}

func newLookout(log *zap.Logger, changed func()) *lookout {
	return &lookout{log: log, changed: changed, at: map[string]*looked{}}
}

// follow takes in who is there and what this replica works on, and looks at what is to be
// looked at from then on, until ctx ends.
func (l *lookout) follow(ctx context.Context, me string, works map[string]bool, duties []Duty, roll store.Roll) {
	now, alone, together := time.Now(), len(roll.Replicas) < 2, joint(duties)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.try == nil {
		return
	}
	wanted := map[string]bool{}
	for _, d := range duties {
		if d.Name == store.House || together[d.Name] {
			continue
		}
		elsewhere, another := false, false
		for _, r := range roll.Replicas {
			if r.ID != me {
				elsewhere = elsewhere || slices.Contains(r.Blind, d.Name)
				another = another || slices.Contains(r.Sees, d.Name)
			}
		}
		t := l.at[d.Name]
		// Who is alone has nobody to hand it to.
		if !elsewhere && (alone || !works[d.Name]) && (t == nil || !t.blind) {
			continue
		}
		if t == nil {
			t = l.begin(ctx, d.Name)
		}
		wanted[d.Name] = true
		t.works, t.elsewhere = works[d.Name], elsewhere
		if t.hear(another, now) {
			select {
			case t.again <- struct{}{}:
			default:
			}
		}
	}
	for name, t := range l.at {
		if !wanted[name] {
			t.stop()
			delete(l.at, name)
		}
	}
}

// begin looks at a target until it is stopped. The caller holds l.mu.
func (l *lookout) begin(ctx context.Context, target string) *looked {
	ctx, stop := context.WithCancel(ctx)
	t := &looked{target: target, again: make(chan struct{}, 1), stop: stop}
	l.at[target] = t
	l.work.Go(func() { l.run(ctx, t) })
	return t
}

// run tries again and again until ctx ends. What is to be tried again at once does not
// wait for an attempt that is under way.
func (l *lookout) run(ctx context.Context, t *looked) {
	var attempts sync.WaitGroup
	defer attempts.Wait()
	due := time.NewTimer(0)
	defer due.Stop()
	under, next := 0, make(chan time.Duration)
	begin := func() {
		under++
		attempts.Go(func() {
			began := time.Now()
			bound, cancel := context.WithTimeout(ctx, lookWithin)
			defer cancel()
			why := l.try(bound, t.target)
			if ctx.Err() != nil {
				return // that it failed then says nothing
			}
			wait := l.note(t, why, began) - time.Since(began)
			select {
			case next <- wait:
			case <-ctx.Done():
			}
		})
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			begin()
		case <-t.again:
			due.Stop()
			begin()
		case wait := <-next:
			if under--; under == 0 {
				due.Reset(wait)
			}
		}
	}
}

// note takes in an attempt, and returns how long to wait for the next.
func (l *lookout) note(t *looked, why string, began time.Time) time.Duration {
	l.mu.Lock()
	blind, sees, sure := t.blind, t.sees(), t.sure
	t.note(why, began)
	t.why = why
	now, works, elsewhere, pause := t.sight, t.works, t.elsewhere, t.pause(t.works)
	l.mu.Unlock()
	target := zap.String("target", t.target)
	switch {
	case now.blind && !blind:
		l.log.Warn("this replica does not reach a target: the others are asked whether they do", target, zap.Bool("works_on_it", works), zap.String("reason", why))
	case !now.blind && blind:
		l.log.Info("this replica reaches a target again", target)
	case now.sees() && !sees && elsewhere && !works:
		l.log.Info("this replica reaches a target that another one does not reach", target)
	}
	if now.blind != blind || now.sees() != sees || now.sure != sure {
		l.changed()
	}
	return pause
}

// says is what the others are to know: the targets that are out of reach, and of those
// that one of them cannot reach the ones that this replica does reach.
func (l *lookout) says() (blind, sees []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, t := range l.at {
		switch {
		case t.blind:
			blind = append(blind, name)
		case t.elsewhere && t.sees():
			sees = append(sees, name)
		}
	}
	slices.Sort(blind)
	slices.Sort(sees)
	return blind, sees
}

// sure says that a target is out of reach still, after another replica was heard to reach
// it; why is the reason.
func (l *lookout) sure(target string) (why string, sure bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.at[target]
	if t == nil || !t.sure {
		return "", false
	}
	return t.why, true
}

// blind says that a target is out of reach.
func (l *lookout) blind(target string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.at[target]
	return t != nil && t.blind
}

// close ends all looks, and begins none any more. What is under way ends soon after.
func (l *lookout) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, t := range l.at {
		t.stop()
	}
}
