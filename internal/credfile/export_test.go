package credfile

// InTime says why the certificate in use does not count now; nil if it does.
func (p *Pair) InTime() error { return inTime(p.f.get().Leaf, p.f.now()) }
