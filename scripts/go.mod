module github.com/ephemeralgo/ephemeral/scripts

go 1.26.0

require (
	github.com/ephemeralgo/ephemeral/atoms/durable v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/durable/flow v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/durable/postgres v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/durable/sqlite v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/sqlitewriter v0.1.0
	github.com/ephemeralgo/ephemeral/core v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/circuitbreaker v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/logging v0.1.0
	github.com/jackc/pgx/v5 v5.12.0
	golang.org/x/exp v0.0.0-20251219203646-944ab1f22d93
	golang.org/x/mod v0.42.0
	golang.org/x/tools v0.52.0
	modernc.org/sqlite v1.61.1
)

require (
	github.com/BurntSushi/toml v1.4.1-0.20240526193622-a339e1f7089c // indirect
	github.com/bmatcuk/doublestar/v4 v4.10.0 // indirect
	github.com/clipperhouse/uax29/v2 v2.7.0 // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/fatih/color v1.19.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/mattn/go-runewidth v0.0.23 // indirect
	github.com/mattn/go-shellwords v1.0.12 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/rhysd/actionlint v1.7.12 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	go.yaml.in/yaml/v4 v4.0.0-rc.3 // indirect
	golang.org/x/exp/typeparams v0.0.0-20231108232855-2478ac86f678 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/telemetry v0.0.0-20261010193011-f71dc92da45e // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/vuln v1.9.0 // indirect
	honnef.co/go/tools v0.7.0 // indirect
	modernc.org/libc v1.79.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)

tool (
	github.com/rhysd/actionlint/cmd/actionlint
	golang.org/x/vuln/cmd/govulncheck
	honnef.co/go/tools/cmd/staticcheck
)

replace github.com/ephemeralgo/ephemeral/core => ../core

replace github.com/ephemeralgo/ephemeral/atoms/durable => ../atoms/durable

replace github.com/ephemeralgo/ephemeral/atoms/durable/flow => ../atoms/durable/flow

replace github.com/ephemeralgo/ephemeral/atoms/durable/postgres => ../atoms/durable/postgres

replace github.com/ephemeralgo/ephemeral/patterns/circuitbreaker => ../patterns/circuitbreaker

replace github.com/ephemeralgo/ephemeral/patterns/logging => ../patterns/logging

replace github.com/ephemeralgo/ephemeral/atoms/durable/sqlite => ../atoms/durable/sqlite

replace github.com/ephemeralgo/ephemeral/atoms/sqlitewriter => ../atoms/sqlitewriter
