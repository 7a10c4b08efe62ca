package catalogue

var listSentences = sentences{
	"list":       {EN: ", ", ZH: "，", Joins: true},
	"names":      {EN: ", ", ZH: "、", Joins: true},
	"both":       {EN: "%s; %s", ZH: "%s；%s"},
	"names.more": {EN: "%s and %d more", ZH: "%s 等，另有 %d 个"},
	"brackets":   {EN: " (%s)", ZH: "（%s）"},
}
