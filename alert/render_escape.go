package alert

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names of locks, reasons and purposes come from anywhere. This file makes them
// text that can be shown: it cannot break a line, turn round what stands beside it,
// mention anybody or become a link.

// maxMarks is how many combining marks may follow one another: more would be drawn
// over the lines above and below.
const maxMarks = 4

// tidy makes text of unknown origin one line of printable characters: line breaks
// and tabs become spaces, everything else that does not print an escape of Go, such
// as \x00 or \u202e. It is idempotent.
func tidy(text string) string { return tidied(text, false) }

// tidyLines is tidy that keeps line breaks.
func tidyLines(text string) string { return tidied(strings.ReplaceAll(text, "\r\n", "\n"), true) }

func tidied(text string, lines bool) string {
	if plainASCII(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	marks := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		raw := text[i : i+size]
		i += size
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == '\n' && lines:
			b.WriteByte('\n')
		case r == '\n' || r == '\r' || r == '\t' || r == '\u00a0' || r == '\u3000':
			b.WriteByte(' ')
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, raw[0])
		case !strconv.IsPrint(r) || blank(r) || marks > maxMarks:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteString(raw)
		}
	}
	return b.String()
}

// blank are letters that show nothing.
func blank(r rune) bool {
	return r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0' || r == '\u2800'
}

func plainASCII(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// cut bounds a text in characters; what was cut off shows as an ellipsis.
func cut(text string, limit int) string {
	if len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return text
	}
	n := 0
	for i := range text {
		if n++; n == limit {
			return text[:i] + "…"
		}
	}
	return text
}

// cutBytes is cut in bytes.
func cutBytes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := max(0, limit-len("…"))
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// entities are the characters that Slack takes as its own, in text that it marks up.
var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// forSlack escapes a tidy text for mrkdwn. Slack has no escape for its marks: each is
// followed by a character without width, so that no pair of them is one.
func forSlack(text string) string {
	return slackMarks.Replace(entities.Replace(text))
}

const noWidth = "\u200b"

var slackMarks = strings.NewReplacer(
	"*", "*"+noWidth, "_", "_"+noWidth, "~", "~"+noWidth, "`", "ˋ", ":", ":"+noWidth, "@", "@"+noWidth, "#", "#"+noWidth,
)

// forFeishu escapes a tidy text for lark_md: by the number of each character that
// has a meaning there, as the documentation of cards asks.
func forFeishu(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < 128 && strings.ContainsRune("&<>~-!*/\\[]()#:+\"'`$_@|", r) {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// forMarkdown escapes a tidy text for services whose Markdown has no escape that can
// be relied on, DingTalk and WeCom: what has a meaning becomes its full-width twin,
// which has none. Names of letters, digits, colons, dashes, dots, slashes and single
// underscores stay as they are, so that they can be copied.
func forMarkdown(text string) string {
	// A scheme or www. alone makes a link of what follows.
	text = schemes.Replace(text)
	var b strings.Builder
	before := ' '
	for i, r := range text {
		switch {
		case r == '_':
			after, _ := utf8.DecodeRuneInString(text[i+1:])
			if within := wordRune(before) && wordRune(after); !within {
				r = '＿'
			}
		case r == '-' || r == '+' || r == '=':
			// At the beginning of a line it is a list or a rule.
			if strings.TrimSpace(lineBefore(text[:i])) == "" {
				r += '＋' - '+'
			}
		case r < 128 && strings.ContainsRune("[]()<>*`#!|~@&\\", r):
			r += '＋' - '+'
		case r == '.' && isNumber(strings.TrimSpace(lineBefore(text[:i]))):
			r = '．' // a numbered list
		}
		before = r
		b.WriteRune(r)
	}
	return b.String()
}

var schemes = strings.NewReplacer("://", "：//", "www.", "www．", "WWW.", "WWW．", "Www.", "Www．")

func lineBefore(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}

func wordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

const hexDigits = "0123456789ABCDEF"

// maxLink is how long a link may be: a longer one is left out.
const maxLink = 800

// safeLink is a link that can stand in any markup: http or https, a host, and only
// characters that end no link anywhere. "" for all others, also for addresses of
// IPv6, whose brackets do.
func safeLink(link string) string {
	link = strings.TrimSpace(link)
	if len(link) > maxLink {
		return ""
	}
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.ContainsAny(u.Host, "[]") || u.User != nil {
		return ""
	}
	var b strings.Builder
	for i := range len(link) {
		// What RFC 3986 allows, less what closes links in Markdown and mrkdwn.
		if c := link[i]; c > ' ' && c < 127 && !strings.ContainsRune("\"'<>()[]{}|\\^`*!~@", rune(c)) {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + string(hexDigits[c>>4]) + string(hexDigits[c&15]))
		}
	}
	if b.Len() > maxLink {
		return ""
	}
	return b.String()
}
