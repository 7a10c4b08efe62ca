package sqlsource

import (
	"fmt"

	"github.com/locksteward/locksteward"
)

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", locksteward.ErrRefused, fmt.Sprintf(format, args...))
}
