// Package telemetry is the part of package complete for OpenTelemetry. It has what
// patterns/telemetry exports, under the names that they would have in package complete. It
// is a separate package, so that programs that import complete do not link OpenTelemetry.
package telemetry
