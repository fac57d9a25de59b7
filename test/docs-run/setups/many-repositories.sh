# The folder that holds a person's checkouts.
cd ..
# A clone of Plimsoll is one of them.
ln -s "$PLIMSOLL_ROOT" plimsoll
