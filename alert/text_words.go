package alert

import (
	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
)

// translate returns a word in a language; an unknown word, such as a status of a later
// version, is returned as it is.
func translate(lang, word string) string {
	return catalogue.Word(lang, word)
}

// sentence renders a message of the catalogue.
func sentence(lang, id string, args ...any) string {
	return catalogue.Text(lang, locksteward.NewMessage(id, args...))
}

// severityWords are how many findings of a severity there are.
func severityWords(lang string, n int, severity string) string {
	return sentence(lang, "notification.count-of", n, translate(lang, severity))
}

// list joins texts.
func list(texts []string) locksteward.Message {
	args := make([]any, len(texts))
	for i, text := range texts {
		args[i] = text
	}
	return locksteward.NewMessage("list", args...)
}
