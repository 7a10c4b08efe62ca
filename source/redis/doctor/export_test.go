package doctor

// What the forecast counts with.
const (
	HistoryRow = historyRow
	EventRow   = eventRow
)
