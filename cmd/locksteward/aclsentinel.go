package main

import (
	"cmp"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/source/redis/acl"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// onSentinels are the users that Sentinels need.
func (f *aclFlags) onSentinels(v acl.Version) ([]aclSet, error) {
	if f.config != "" {
		return f.onSentinelsOfTargets(v)
	}
	hash, err := hashOf("--password-file", f.passwordFile)
	if err != nil {
		return nil, err
	}
	u, err := acl.Sentinel(v, acl.Ask{Name: f.app, Hash: hash, Follow: f.app != ""})
	if err != nil {
		return nil, usagef("%w", err)
	}
	return []aclSet{{Version: v, Users: []acl.User{u}}}, nil
}

func (f *aclFlags) onSentinelsOfTargets(v acl.Version) ([]aclSet, error) {
	cfg, err := loadConfig(f.config)
	if err != nil {
		return nil, err
	}
	var sets []aclSet
	known := false
	for _, t := range cfg.Targets {
		if f.target != "" && t.Name != f.target {
			continue
		}
		known = true
		spec, err := connect.Parse(t.URL)
		if err != nil {
			return nil, usagef("target %q: %w", t.Name, err)
		}
		if spec.Mode != locksteward.ModeSentinel {
			continue
		}
		set, err := f.onSentinelsOf(v, t)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	switch {
	case !known:
		return nil, usagef("--target: %s has no target %q", f.config, f.target)
	case len(sets) == 0:
		return nil, usagef("--sentinels: %s has no target behind Sentinels (redis+sentinel://); leave the flag out", f.config)
	}
	return sets, nil
}

func (f *aclFlags) onSentinelsOf(v acl.Version, t config.Target) (aclSet, error) {
	set := aclSet{Target: t.Name, Version: v}
	hash, err := hashOf("sentinel_password_file of target "+t.Name, cmp.Or(f.passwordFile, t.SentinelPasswordFile))
	if err != nil {
		return set, err
	}
	u, err := acl.Sentinel(v, acl.Ask{Name: t.SentinelUsername, Hash: hash})
	if err != nil {
		return set, usagef("target %q: %w", t.Name, err)
	}
	set.Users = []acl.User{u}
	if t.SentinelUsername == "" {
		set.Notes = append(set.Notes, "The target has no sentinel_username: write sentinel_username: "+u.Name+" and its sentinel_password_file.")
	}
	return set, nil
}
