package alert

import (
	"fmt"
	"strings"

	"github.com/locksteward/locksteward/catalogue"
)

// translate returns a word in a language; an unknown word, such as a status of a later
// version, is returned as it is.
func translate(lang, word string) string {
	return catalogue.Word(lang, word)
}

// moreWords are that some findings are not listed.
func moreWords(lang string, n int) string {
	if lang == "zh" {
		return fmt.Sprintf("另有 %d 项未列出", n)
	}
	return fmt.Sprintf("and %d more", n)
}

// severityWords are how many findings of a severity there are.
func severityWords(lang string, n int, severity string) string {
	if lang == "zh" {
		return fmt.Sprintf("%s %d", translate(lang, severity), n)
	}
	return fmt.Sprintf("%d %s", n, translate(lang, severity))
}

// asideWords put a list into brackets behind what it explains.
func asideWords(lang string, list []string) string {
	if lang == "zh" {
		return "（" + strings.Join(list, "，") + "）"
	}
	return " (" + strings.Join(list, ", ") + ")"
}

// firingWords are how many locks of a group fire.
func firingWords(lang string, n int) string {
	switch {
	case lang == "zh":
		return fmt.Sprintf("该分组当前共有 %d 项未恢复", n)
	case n == 1:
		return "1 finding of the group fires now"
	default:
		return fmt.Sprintf("%d findings of the group fire now", n)
	}
}

// severalWords count rules, classes or targets.
func severalWords(lang string, n int, what string) string {
	if lang == "zh" {
		return fmt.Sprintf("%d %s", n, map[string]string{"rules": "条规则", "classes": "个类别", "targets": "个目标"}[what])
	}
	return fmt.Sprintf("%d %s", n, what)
}

// testWords are the sentence of a test.
func testWords(lang, receiver, by string) string {
	if lang == "zh" {
		return "这是对接收方 " + receiver + " 的测试，由 " + by + " 发起。一切正常，无需处理。"
	}
	return "This is a test of receiver " + receiver + ", asked for by " + by + ". Nothing is wrong."
}
