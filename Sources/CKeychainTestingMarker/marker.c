#include "CKeychainTestingMarker.h"
