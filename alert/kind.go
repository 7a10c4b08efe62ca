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
	// manner is how a filled one wants to be told.
	manner() manner
}

// manner is how a kind of receiver wants to be told.
type manner struct {
	Patience
	// cap is how many findings of a message are told in full. A receiver that people
	// read gets one message with the first of them and a count of the rest, others
	// get as many messages as it takes.
	cap int
	// people says that people read it: its messages come one at a time and in one
	// order, and while more are due than its rates permit what waits for all groups
	// comes in one digest, unless apart.
	people bool
	// apart says that each group is one alert there: no message is about several.
	apart bool
	rates
	// standing says that the receiver forgets what is not told again and again.
	standing bool
}

// named is a kind with its key in the configuration.
type named struct {
	key string
	kind
}

// kinds are those that the receiver is configured as: one, if it is valid.
func (r Receiver) kinds() []named {
	var out []named
	add := func(key string, is bool, k func() kind) {
		if is {
			out = append(out, named{key, k().filled()})
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

// opened opens the receiver's kind, which is valid. Each problem begins with the
// kind's key.
func (r Receiver) opened() (transport, manner, error) {
	k := r.kinds()[0]
	t, err := follow(k.key+".", func(fs *files) (transport, error) { return k.open(r, fs) })
	if err != nil {
		return nil, manner{}, errors.Join(prefixed(k.key+".", err)...)
	}
	return followed(t), k.manner(), nil
}
