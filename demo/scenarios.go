package main

import (
	"github.com/ephemeralgo/ephemeral/demo/scenario"
	"github.com/ephemeralgo/ephemeral/demo/scenario/backpressure"
	"github.com/ephemeralgo/ephemeral/demo/scenario/breaker"
	"github.com/ephemeralgo/ephemeral/demo/scenario/chain"
	"github.com/ephemeralgo/ephemeral/demo/scenario/command"
	"github.com/ephemeralgo/ephemeral/demo/scenario/hint"
	"github.com/ephemeralgo/ephemeral/demo/scenario/metrics"
	"github.com/ephemeralgo/ephemeral/demo/scenario/notification"
	"github.com/ephemeralgo/ephemeral/demo/scenario/pipeline"
	"github.com/ephemeralgo/ephemeral/demo/scenario/preload"
	"github.com/ephemeralgo/ephemeral/demo/scenario/rate"
	"github.com/ephemeralgo/ephemeral/demo/scenario/reputation"
	"github.com/ephemeralgo/ephemeral/demo/scenario/resize"
	"github.com/ephemeralgo/ephemeral/demo/scenario/tiers"
	"github.com/ephemeralgo/ephemeral/demo/scenario/viewer"
)

// scenarios are the scenarios of "scenario" and "menu", in the order of a first reading.
var scenarios = []scenario.Scenario{
	notification.Scenario,
	hint.Scenario,
	command.Scenario,
	pipeline.Scenario,
	chain.Scenario,
	breaker.Scenario,
	backpressure.Scenario,
	metrics.Scenario,
	rate.Scenario,
	viewer.Scenario,
	resize.Scenario,
	preload.Scenario,
	tiers.Scenario,
	reputation.Scenario,
}
