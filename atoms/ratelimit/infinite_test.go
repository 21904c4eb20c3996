package ratelimit_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/core"
)

func TestAnInfiniteRateNamesUnlimited(t *testing.T) {
	_, err := ratelimit.New(core.Rate{PerSecond: math.Inf(1)}, ratelimit.Options{})
	assert.ErrorContains(t, err, "ratelimit.Unlimited")
}
