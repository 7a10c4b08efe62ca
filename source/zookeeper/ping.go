package zksource

import "context"

// Ping returns nil if a server serves the source's session.
func (s *Source) Ping(ctx context.Context) error {
	_, err := s.client.get(ctx)
	return err
}
