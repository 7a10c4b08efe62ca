package alert

// kind is what is particular to one kind of receiver; a file each.
type kind struct {
	traits
	// fill fills in what a receiver leaves out; nil: it has no defaults of its own.
	fill func(*Receiver)
	// problems reports what is wrong with a receiver that has its defaults, beside what all
	// kinds have, each problem with its key. It reads no file. nil: nothing can be.
	problems func(Receiver) []error
	// mentionable reports whether mention may have a word, and mentions lists those that it
	// may have; nil: nobody can be mentioned.
	mentionable func(string) bool
	mentions    string
	// open makes a transport of what the files that a receiver names hold now, and reports
	// all problems at once, joined, each with its key. The receiver is valid and has its
	// defaults.
	open func(Receiver, *files) (transport, error)
}

// traits are what notifications of a kind of receiver depend on.
type traits struct {
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

// kindNames are the names of all kinds, as people see them.
var kindNames = []string{"webhook", "alertmanager", "pagerduty", "email", "slack", "dingtalk", "feishu", "wecom"}

var kinds = map[string]kind{
	"webhook":      webhookKind,
	"alertmanager": alertmanagerKind,
	"pagerduty":    pagerDutyKind,
	"email":        emailKind,
	"slack":        slackKind,
	"dingtalk":     dingtalkKind,
	"feishu":       feishuKind,
	"wecom":        wecomKind,
}
