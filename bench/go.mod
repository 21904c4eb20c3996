module github.com/ephemeralgo/ephemeral/bench

go 1.26
