#!/bin/sh
# Types of web/*.js, from their JSDoc comments, against the stub of D3 in web/types. Needs node-typescript.
set -eu
cd "$(dirname "$0")/.."
exec tsc --noEmit --allowJs --checkJs --strict --noUnusedLocals --target es2021 --module es2020 \
  --moduleResolution node --lib es2021,dom,dom.iterable web/types/*.d.ts web/*.js
