package openai

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"tailgate/replay"
	"tailgate/schemas"
)

// fail sets the outcome of a request that broke before its answer was complete; ctx is the request's own.
func fail(ctx context.Context, o *replay.Outcome, err error) {
	switch {
	case ctx.Err() == nil:
		o.Status, o.ErrorKind = classify(err)
	case errors.Is(context.Cause(ctx), errTimeout):
		o.Status, o.ErrorKind = schemas.ResultTimeout, replay.KindTimeout
	default:
		o.Status, o.ErrorKind = schemas.ResultCancelled, replay.KindAborted
	}
}

var errTimeout = errors.New("the request's time limit")

// classify names what broke the connection. Trouble of the network, before or during the answer, has the status
// reset; its kind tells which.
func classify(err error) (status, kind string) {
	var (
		dns       *net.DNSError
		netErr    net.Error
		cert      *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		authority x509.UnknownAuthorityError
	)
	status = schemas.ResultReset
	switch {
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		return status, replay.KindDescriptors
	case errors.As(err, &dns):
		return status, replay.KindDNS
	case errors.Is(err, syscall.ECONNREFUSED):
		return status, replay.KindConnectRefused
	case errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH):
		return status, replay.KindUnreachable
	case errors.As(err, &cert) || errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &authority):
		return status, replay.KindTLS
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &netErr) && netErr.Timeout():
		return schemas.ResultTimeout, replay.KindTimeout
	case isReset(err):
		return status, replay.KindReset
	}
	return status, replay.KindOther
}

// isReset tells a connection that the other end broke.
func isReset(err error) bool {
	for _, sign := range []error{
		syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe,
		net.ErrClosed,
	} {
		if errors.Is(err, sign) {
			return true
		}
	}
	// net/http has no exported error for this one.
	return strings.Contains(err.Error(), "server closed idle connection")
}
