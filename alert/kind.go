package alert

import "errors"

// kind is the configuration of one kind of receiver; a file each.
type kind interface {
	// filled returns it with its defaults.
	filled() kind
	// problems reports what is wrong with a filled one, each problem with its key
	// below the kind. It reads no file.
	problems() []error
	// open makes a transport of what the files that a filled one names hold now, and
	// reports all problems at once, joined, each with its key below the kind.
	open(Receiver, *files) (transport, error)
	// traits are those of a filled one.
	traits() traits
}

// traits are what notifications of a kind of receiver depend on.
type traits struct {
	Patience
	// cap bounds the findings that a notification lists. A receiver that people read gets
	// one notification with the worst of them and a count of the rest, others get as many
	// notifications as it takes.
	cap int
	// people says that people read it: its notifications are sent one at a time and in one
	// order. While more are due than its rates permit, all groups are combined in one
	// digest, unless onePerGroup.
	people bool
	// onePerGroup says that each group is one alert there: no notification has several.
	onePerGroup bool
	rates
}

// namedKind is a kind with its key in the configuration.
type namedKind struct {
	key string
	kind
}

// kinds are the configured kinds of a receiver: one, if it is valid.
func (r Receiver) kinds() []namedKind {
	var out []namedKind
	add := func(key string, is bool, k func() kind) {
		if is {
			out = append(out, namedKind{key, k().filled()})
		}
	}
	add("webhook", r.Webhook != nil, func() kind { return *r.Webhook })
	add("alertmanager", r.Alertmanager != nil, func() kind { return *r.Alertmanager })
	add("pagerduty", r.PagerDuty != nil, func() kind { return *r.PagerDuty })
	add("email", r.Email != nil, func() kind { return *r.Email })
	add("slack", r.Slack != nil, func() kind { return *r.Slack })
	add("dingtalk", r.DingTalk != nil, func() kind { return *r.DingTalk })
	add("feishu", r.Feishu != nil, func() kind { return *r.Feishu })
	add("wecom", r.WeCom != nil, func() kind { return *r.WeCom })
	return out
}

// kindKeys are the keys of all kinds, for people.
const kindKeys = "webhook, alertmanager, pagerduty, email, slack, dingtalk, feishu, wecom"

// opened opens the transport of a valid receiver. Each problem begins with the kind's key.
func (r Receiver) opened() (transport, traits, error) {
	k := r.kinds()[0]
	t, err := openReloading(k.key+".", func(fs *files) (transport, error) { return k.open(r, fs) })
	if err != nil {
		return nil, traits{}, errors.Join(prefixed(k.key+".", err)...)
	}
	return asResender(t), k.traits(), nil
}
