package console

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// pageNotifications is how many notifications a page lists.
const pageNotifications = 50

// notificationsData is the receivers and a list of notifications with its filter.
type notificationsData struct {
	Receivers           []receiverRow
	States, InReceivers pick
	Filtered            bool
	Rows                []api.Notification
	Errors              bool // one of Rows has an error
	Pager               pager
}

// receiverRow is a receiver with its state in a word.
type receiverRow struct {
	api.Receiver
	Word, Tone string
}

// notifications answers GET /notifications, the newest first.
func (s *Server) notifications(w http.ResponseWriter, r *http.Request, who users.User) error {
	q := pageQuery(r, "state", "receiver", "before")
	wanted := NotificationQuery{
		State: q.oneOf("state", "waiting", "delivered", "dead"), Receiver: q.text("receiver"), Before: q.place("before"), Limit: pageNotifications + 1,
	}
	if err := q.err(); err != nil {
		return err
	}
	list, err := s.deps.Notifications.Notifications(r.Context(), wanted)
	if err != nil {
		return fmt.Errorf("list notifications: %w", err)
	}
	receivers, err := s.deps.Notifications.Receivers(r.Context())
	if err != nil {
		return fmt.Errorf("list receivers: %w", err)
	}
	data := notificationsData{Filtered: wanted.State+wanted.Receiver != "", Rows: list[:min(len(list), pageNotifications)]}
	data.States = pick{Label: "State", Name: "state", All: "any state"}
	for _, o := range [][2]string{{"waiting", "waiting"}, {"delivered", "delivered"}, {"dead", "given up"}} {
		data.States.add(o[0], o[1], wanted.State)
	}
	data.InReceivers = pick{Label: "Receiver", Name: "receiver", All: "all receivers"}
	for _, one := range receivers {
		data.Receivers = append(data.Receivers, receiverRowOf(one))
		data.InReceivers.add(one.Name, one.Name, wanted.Receiver)
	}
	data.InReceivers.keep(wanted.Receiver)
	for _, row := range data.Rows {
		data.Errors = data.Errors || row.LastError != ""
	}
	v := s.view(r, who, pageSpec{})
	if wanted.Before > 0 {
		data.Pager.Before, data.Pager.BeforeName = v.With("before", ""), "Newest"
	}
	if len(list) > pageNotifications {
		data.Pager.After, data.Pager.AfterName = v.With("before", strconv.FormatInt(data.Rows[pageNotifications-1].Seq, 10)), "Older"
	}
	return s.show(w, r, who, pageSpec{name: "notifications", section: "/notifications", title: "Notifications", data: data})
}

func receiverRowOf(one api.Receiver) receiverRow {
	row := receiverRow{Receiver: one, Word: "ok", Tone: "good"}
	switch {
	case one.Dead > 0:
		row.Word, row.Tone = "gave up", "critical"
	case one.Gone, one.CircuitOpen, one.Failing != "":
		row.Word, row.Tone = "failing", "critical"
	case !one.Configured:
		row.Word, row.Tone = "removed", "quiet"
	case one.Waiting > 0:
		row.Word, row.Tone = "sending", "warning"
	}
	return row
}
