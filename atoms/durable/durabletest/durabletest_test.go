package durabletest_test

import (
	"testing"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/durabletest"
)

func TestMemory(t *testing.T) {
	store := durable.Memory()
	durabletest.Run(t, func(testing.TB) durable.Store { return store })
}
