package formats

// families are all lock libraries that are one of a kind, those that know the
// names of their keys before those that know a lock by its value alone.
var families = func() (list []*family) {
	for _, named := range []bool{true, false} {
		for _, group := range [][]*family{jvmFamilies, dotnetFamilies, golangFamilies, nodeFamilies, pythonFamilies, rubyFamilies, phpFamilies} {
			for _, f := range group {
				if (f.key != nil) == named {
					list = append(list, f)
				}
			}
		}
	}
	return list
}()
