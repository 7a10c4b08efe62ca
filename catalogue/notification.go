package catalogue

// notificationSentences are sentences of notifications that are not about one finding.
var notificationSentences = sentences{
	"notification.label":    {EN: "%s: ", ZH: "%s："},
	"notification.more":     {EN: "and %d more", ZH: "另有 %d 项未列出"},
	"notification.more-of":  {EN: "and %d more: %s", ZH: "另有 %d 项未列出：%s"},
	"notification.count-of": {EN: "%d %s", ZH: "%[2]s %[1]d"},
	"notification.firing": {
		One: "%d finding of the group fires now",
		EN:  "%d findings of the group fire now",
		ZH:  "该分组当前共有 %d 项未恢复",
	},
	"notification.test": {
		EN: "This is a test of receiver %s, asked for by %s. Nothing is wrong.",
		ZH: "这是对接收方 %s 的测试，由 %s 发起。一切正常，无需处理。",
	},
	"notification.first-sweep": {
		EN: "The first sweep of %s found %d problems. Each is notified of only when it changes.",
		ZH: "对 %s 的首次扫描发现 %d 个问题，之后仅在变化时逐个通知。",
	},
}
