package datatest_test

import (
	"testing"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/data/datatest"
)

func TestMemory(t *testing.T) {
	datatest.Run(t, func(testing.TB) data.Engine { return datatest.Memory() }, datatest.Options{
		Reopen: func(_ testing.TB, closed data.Engine) data.Engine { return closed },
	})
}
