package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/diskselect"
	"github.com/slipway/slipway/internal/machine"
)

// finish makes the receipt, of success or of failure, and delivers it.
func (r *run) finish(ctx context.Context, err error) Result {
	receipt := r.receipt
	receipt.Finished = r.env.Clock.Now()
	if receipt.Finished.Before(receipt.Started) {
		receipt.Finished = receipt.Started
	}
	if err != nil {
		receipt.Error, receipt.Reasons = oneLine(words(err)), reasons(err)
		receipt.ReadBack = false
	}
	result := Result{Reply: r.reply, Receipt: receipt, Err: err}
	if receipt.Ticket == "" {
		return result // nobody to whom this would mean anything
	}
	// An install that was stopped still says so.
	ctx = context.WithoutCancel(ctx)
	_, lost := retry(ctx, r.env, "delivering the receipt", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, r.source.Receipt(ctx, receipt)
	})
	if lost != nil {
		r.env.Screen.Say(fmt.Sprintf("the receipt was not delivered: %v", lost))
	}
	result.Acknowledged = lost == nil
	return result
}

// reasons are all sentences against an install.
func reasons(err error) []string {
	var no *Refused
	if !errors.As(err, &no) {
		return nil
	}
	var out []string
	for _, s := range no.Reasons {
		out = append(out, oneLine(s))
	}
	return out
}

// maxWords bounds one sentence of a receipt, bytes.
const maxWords = 2000

// oneLine makes text fit into a receipt, which has no control characters.
func oneLine(s string) string {
	s = strings.Map(func(c rune) rune {
		if c == '\n' {
			return ';'
		}
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > maxWords {
		s = strings.ToValidUTF8(s[:maxWords], "")
	}
	return s
}

// Summary is the result for a person before the machine, line by line.
func (r Result) Summary() []string {
	c := r.Receipt
	var out []string
	switch {
	case r.Err == nil:
		out = append(out, fmt.Sprintf("node %s is installed on %s", c.Node, diskselect.Describe(c.Disk)), "receipt: "+receiptText(c))
	case !c.Written:
		out = append(out, "nothing was written: "+headline(r.Err))
	default:
		out = append(out, "the disk does not boot, and its old content is lost: "+headline(r.Err))
	}
	if len(c.Reasons) > 1 {
		for _, s := range c.Reasons[1:] { // the first is in the headline
			out = append(out, "  - "+s)
		}
	}
	for _, d := range c.Data {
		out = append(out, fmt.Sprintf("data disk %s was %s", d.Name, d.Action))
	}
	if c.Ticket != "" && !r.Acknowledged {
		out = append(out, "nobody has acknowledged the receipt")
	}
	return out
}

// headline is an error above the list of its reasons: with the first of them, and
// without their number.
func headline(err error) string {
	var no *Refused
	if errors.As(err, &no) && len(no.Reasons) > 1 {
		return strings.Replace(words(err), no.Error(), oneLine(no.Reasons[0]), 1)
	}
	return words(err)
}

// receiptText is what a receipt proves, on one line.
func receiptText(c machine.Receipt) string {
	text := fmt.Sprintf("image %s and seed %s, %s written in %s", c.Index.Short(), c.Seed.Short(), diskselect.Bytes(c.Bytes), c.Finished.Sub(c.Started).Round(time.Second))
	if c.ReadBack {
		text += ", all read back and compared"
	}
	if c.DiskGUID != "" {
		text += ", disk GUID " + c.DiskGUID
	}
	if c.Sanitized != "" {
		text += ", before that: " + c.Sanitized
	}
	return text
}
