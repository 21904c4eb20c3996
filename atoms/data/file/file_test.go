package file

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/data/datatest"
)

func TestEngine(t *testing.T) {
	openIn := func(t testing.TB, dir string) *engine {
		e, err := open(t.Context(), osDisk{}, dir, "data")
		require.NoError(t, err)
		return e
	}
	datatest.Run(t, func(t testing.TB) data.Engine { return openIn(t, t.TempDir()) }, datatest.Options{
		Partial: true,
		Reopen: func(t testing.TB, closed data.Engine) data.Engine {
			return openIn(t, closed.(*engine).dir+"/..")
		},
	})
}
