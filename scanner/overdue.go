package scanner

import "time"

// Overdue is when, by the schedule, the second sweep after the given time begins at
// the latest: if none was complete by then, sweeps are missing. It is the zero time
// if the schedule has no more dates.
func (s *Scanner) Overdue(after time.Time) time.Time {
	first := s.schedule.cron.Next(after.In(s.schedule.zone))
	if first.IsZero() {
		return first
	}
	second := s.schedule.cron.Next(first)
	if second.IsZero() {
		second = first
	}
	late := s.schedule.jitter
	if late == 0 {
		late = min(second.Sub(first)/10, maxJitter)
	}
	return second.Add(late)
}
