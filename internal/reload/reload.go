// Package reload applies a new configuration to several components, or to none of them.
//
// A component prepares what the configuration needs, which may fail, and changes nothing before Commit.
package reload

// Prepared is what a component prepared for a new configuration. Its owner calls Commit or Discard, once.
type Prepared interface {
	// Commit puts the new configuration into effect. It cannot fail.
	Commit()
	// Discard releases what was prepared: another component refused the configuration.
	Discard()
}

// All is what several components prepared, in the order in which they are committed.
type All []Prepared

// Commit commits all, in their order.
func (a All) Commit() {
	for _, p := range a {
		p.Commit()
	}
}

// Discard discards all, the last one first.
func (a All) Discard() {
	for i := len(a) - 1; i >= 0; i-- {
		a[i].Discard()
	}
}

// Prepare calls the functions in their order. If one fails it discards what the others prepared and returns the error.
func Prepare(prepare ...func() (Prepared, error)) (All, error) {
	var all All
	for _, f := range prepare {
		p, err := f()
		if err != nil {
			all.Discard()
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// Funcs is a Prepared made of two functions; nil does nothing.
type Funcs struct{ OnCommit, OnDiscard func() }

// Commit calls OnCommit.
func (f Funcs) Commit() { call(f.OnCommit) }

// Discard calls OnDiscard.
func (f Funcs) Discard() { call(f.OnDiscard) }

func call(f func()) {
	if f != nil {
		f()
	}
}
