package main

import "github.com/ephemeralgo/ephemeral/demo/scenario"

// scenarios are those of "scenario" and "menu", in the order of a first reading.
var scenarios = []scenario.Scenario{}
