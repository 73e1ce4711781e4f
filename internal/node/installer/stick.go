package installer

import (
	"context"
	"errors"
	"time"
)

func (a *app) fromStick(context.Context) ending {
	return failed(errors.New("not yet"))
}

func (a *app) awaitStick(time.Duration) {}
