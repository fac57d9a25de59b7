# The folder that holds a person's checkouts.
cd ..
