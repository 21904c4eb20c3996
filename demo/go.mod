module github.com/ephemeralgo/ephemeral/demo

go 1.26.0

require (
	charm.land/bubbletea/v2 v2.0.10
	github.com/charmbracelet/x/ansi v0.11.7
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/ephemeralgo/ephemeral/atoms/durable v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/durable/postgres v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/durable/sqlite v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/echo v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/mesh v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/mesh/embedded v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/molecules v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/ratelimit v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/scheduledtasks v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/sqlitewriter v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/windowsize v0.1.0
	github.com/ephemeralgo/ephemeral/core v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/anomalydetector v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/backpressure v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/circuitbreaker v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/signallogwatcher v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/statuspage v0.1.0
	github.com/gabriel-vasile/mimetype v1.4.16
	github.com/jackc/pgx/v5 v5.12.0
	github.com/vbauerster/mpb/v8 v8.16.2
	golang.org/x/image v0.47.0
	golang.org/x/sys v0.50.0
	golang.org/x/term v0.47.0
)

require (
	github.com/VividCortex/ewma v1.2.0 // indirect
	github.com/acarl005/stripansi v0.0.0-20180116102854-5a71ef0e047d // indirect
	github.com/antithesishq/antithesis-sdk-go v0.9.0-default-no-op // indirect
	github.com/charmbracelet/colorprofile v0.4.3 // indirect
	github.com/charmbracelet/ultraviolet v0.0.0-20260703014108-f5a850f9c2b7 // indirect
	github.com/charmbracelet/x/term v0.2.2 // indirect
	github.com/charmbracelet/x/termios v0.1.1 // indirect
	github.com/charmbracelet/x/windows v0.2.2 // indirect
	github.com/clipperhouse/displaywidth v0.11.0 // indirect
	github.com/clipperhouse/uax29/v2 v2.7.0 // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/lucasb-eyer/go-colorful v1.4.0 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/mattn/go-runewidth v0.0.30 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/muesli/cancelreader v0.2.2 // indirect
	github.com/nats-io/jwt/v2 v2.8.3 // indirect
	github.com/nats-io/nats-server/v2 v2.15.3 // indirect
	github.com/nats-io/nats.go v1.55.0 // indirect
	github.com/nats-io/nkeys v0.4.17 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/vbauerster/cupwriter v0.0.5 // indirect
	github.com/xo/terminfo v0.0.0-20220910002029-abceb7e1c41e // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/time v0.16.0 // indirect
	modernc.org/libc v1.79.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
	modernc.org/sqlite v1.61.1 // indirect
)

replace (
	github.com/ephemeralgo/ephemeral/atoms/durable => ../atoms/durable
	github.com/ephemeralgo/ephemeral/atoms/durable/postgres => ../atoms/durable/postgres
	github.com/ephemeralgo/ephemeral/atoms/durable/sqlite => ../atoms/durable/sqlite
	github.com/ephemeralgo/ephemeral/atoms/echo => ../atoms/echo
	github.com/ephemeralgo/ephemeral/atoms/mesh => ../atoms/mesh
	github.com/ephemeralgo/ephemeral/atoms/mesh/embedded => ../atoms/mesh/embedded
	github.com/ephemeralgo/ephemeral/atoms/molecules => ../atoms/molecules
	github.com/ephemeralgo/ephemeral/atoms/ratelimit => ../atoms/ratelimit
	github.com/ephemeralgo/ephemeral/atoms/scheduledtasks => ../atoms/scheduledtasks
	github.com/ephemeralgo/ephemeral/atoms/sqlitewriter => ../atoms/sqlitewriter
	github.com/ephemeralgo/ephemeral/atoms/windowsize => ../atoms/windowsize
	github.com/ephemeralgo/ephemeral/core => ../core
	github.com/ephemeralgo/ephemeral/patterns/anomalydetector => ../patterns/anomalydetector
	github.com/ephemeralgo/ephemeral/patterns/backpressure => ../patterns/backpressure
	github.com/ephemeralgo/ephemeral/patterns/circuitbreaker => ../patterns/circuitbreaker
	github.com/ephemeralgo/ephemeral/patterns/signallogwatcher => ../patterns/signallogwatcher
	github.com/ephemeralgo/ephemeral/patterns/statuspage => ../patterns/statuspage
)
