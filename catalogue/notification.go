package catalogue

// notificationSentences are sentences of notifications that are not about one finding.
var notificationSentences = sentences{
	"notification.first-sweep": {
		EN: "The first sweep of %s found %d problems. Each is notified of only when it changes.",
		ZH: "对 %s 的首次扫描发现 %d 个问题，之后仅在变化时逐个通知。",
	},
}
