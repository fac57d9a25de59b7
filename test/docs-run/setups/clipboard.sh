# A clipboard that takes everything, so that a test leaves the one of the machine alone.
mkdir -p ~/bin
printf '#!/bin/sh\nexec cat >/dev/null\n' >~/bin/pbcopy
chmod +x ~/bin/pbcopy
PATH=~/bin:$PATH
