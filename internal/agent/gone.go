package agent

import "context"

// resolveGone ends the findings of targets that no replica has in its configuration.
func (a *Agent) resolveGone(ctx context.Context) error {
	// A reload may be about to add or remove targets: the next time will do.
	select {
	case a.changes <- struct{}{}:
		defer a.endChange()
	default:
		return nil
	}
	elsewhere, err := a.elsewhere(ctx)
	if err != nil {
		return err
	}
	return a.targetDeps().ResolveGone(ctx, func(target string) bool { return a.targets.Configured(target) || elsewhere[target] })
}

// elsewhere are the targets that a replica has in its configuration.
func (a *Agent) elsewhere(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	if a.member == nil {
		return out, nil
	}
	members, err := a.store.Membership(ctx)
	for _, r := range members.Replicas {
		for _, name := range r.Targets {
			out[name] = true
		}
	}
	return out, err
}
