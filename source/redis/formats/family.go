package formats

// family is one lock library's way to store its locks, made of functions: a
// [Dialect] in one file of its own (family_<name>.go), with a page
// docs/dialects/<name>.md and fixtures in testdata/<name>.
type family struct {
	name string
	// typ is the one type that its locks have, as TYPE says it; "" for several.
	typ string
	// key says by the name alone that a key may be a lock of the family; nil if
	// its names tell nothing. Families that know their names are asked first.
	key func(key string) bool
	// recognise decodes s, or says that it is not of this family. The name need
	// not be filled in.
	recognise func(s Sample) (Decoded, bool)
	// release makes the command for a sample that was recognised; nil if it
	// cannot be done safely, and then refuse says why.
	release func(s Sample, p plan) (Command, error)
	refuse  string
	// stand makes what stands in a lock's place (see stand.go); nil for one string.
	// noStand is why nothing can; sleeps says that who waits sleeps until the
	// expiry that it last saw.
	stand   stander
	noStand string
	sleeps  bool
	// noUndo is why a release cannot be undone by putting the key back.
	noUndo string
	// person is why each release of such a lock is a person's to decide, whatever
	// rules and policy say; "" if a proof may decide it. See [NeedsPerson].
	person string
	// companion returns the lock that a helper key of the family belongs to
	// (queue, signal, counter, latch); nil if there are none. lock is "" for a
	// helper that belongs to no one lock.
	companion func(key string) (lock string, ok bool)
}

// Name returns the name.
func (f *family) Name() string { return f.name }

// Recognise decodes s, or says that it is not of this family.
func (f *family) Recognise(s Sample) (Decoded, bool) {
	if f.typ != "" && f.typ != s.Type || f.key != nil && !f.key(s.Key) {
		return Decoded{}, false
	}
	d, ok := f.recognise(s)
	d.Dialect = f.name
	return d, ok
}

// Release returns the family's command, or says why there is none.
func (f *family) Release(s Sample, r Release) (Command, error) {
	p, err := planRelease(f.name, s, r)
	if err != nil {
		return Command{}, err
	}
	if f.release == nil {
		return Command{}, p.refuse("%s", f.refuse)
	}
	return f.release(s, p)
}

// NeedsPerson says why a lock of the dialect called name is never released, nor
// its release asked for, without a person who looked at that very lock; "" where
// rules may decide it. A dialect that is not known needs one.
func NeedsPerson(name string) string {
	d, ok := Get(name)
	if !ok {
		return "nobody knows how such a lock is kept"
	}
	if f, ok := d.(*family); ok {
		return f.person
	}
	return ""
}

var _ Dialect = (*family)(nil)
